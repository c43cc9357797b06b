"""Complete command lines: print the script of a shell, and the names that its script asks for.

The scripts lie beside the schemas of the package; `tools/completion.py` makes them from the table of commands. They ask
for names by the hidden command `skillshelf _complete KIND WORDS`, where WORDS are those before the one to complete.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from skillshelf.cli.command_table import COMMANDS, SHARED
from skillshelf.cli.commands import Values, shelf_for
from skillshelf.core import files
from skillshelf.core.console import as_json, write
from skillshelf.core.text import did_you_mean, visible
from skillshelf.errors import DONE, ConfigurationError, SkillError

__all__ = ["SCRIPTS", "complete", "completion"]

SCRIPTS = {"bash": "skillshelf.bash", "zsh": "_skillshelf", "fish": "skillshelf.fish"}
"""The script of each shell, by the name under which the shell looks for it."""

_LARGEST_SCRIPT = 1_000_000
_MOST_NAMES = 5000


def completion(values: Values) -> int:
    """Print the completion script of a shell."""
    shell = values["shell"]
    if shell not in SCRIPTS:
        hint = f"{did_you_mean(shell, SCRIPTS)} (known: {', '.join(SCRIPTS)})"
        raise ConfigurationError(f"unknown shell {shell!r}{hint}")
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    data = files.read_file(f"{folder}/completions/{SCRIPTS[shell]}", limit=_LARGEST_SCRIPT, links="never")
    if data is None:
        raise ConfigurationError(f"the completion script of {shell} is not installed")
    text = data.decode("utf-8")
    write(as_json({"shell": shell, "script": text}) if values["json"] else text)
    return DONE


def complete(words: Sequence[str]) -> int:
    """Print the names of a kind, one a line; print nothing if there is a problem: nobody would read about it."""
    try:
        names = _names(words[0] if words else "", words[1:], _shared_values(words[1:]))
        write("".join(f"{name}\n" for name in _typeable(names)))
    except (SkillError, OSError):
        pass
    return DONE


def _shared_values(words: Sequence[str]) -> dict[str, Any]:
    """Return the shared options among words of an unfinished line, which may be quoted, wrong or cut off."""
    values: dict[str, Any] = {option.key: None if option.value else False for option in SHARED}
    known = {option.name: option for option in SHARED if option.value}
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in known and (equals or number + 1 < len(words)):
            values[known[name].key] = _unquoted(value if equals else words[number + 1])
    return values


def _unquoted(word: str) -> str:
    """Return the text that a word of a shell stands for, without running or replacing anything but `~`."""
    try:
        parts = shlex.split(word)
    except ValueError:
        parts = [word]
    return os.path.expanduser(parts[0]) if len(parts) == 1 else word


def _typeable(names: Iterable[str]) -> Iterator[str]:
    """Yield names that a person can type and a terminal can show; one that begins with a dash would be an option."""
    for number, name in enumerate(dict.fromkeys(names)):
        if number < _MOST_NAMES and name and not name.startswith("-") and visible(name) == name:
            yield name


def _names(kind: str, words: Sequence[str], values: Values) -> Iterable[str]:
    if kind == "skill" and (not _OF_MACHINE.isdisjoint(words) or any(word.startswith("--in") for word in words)):
        return _names_of_machine(values)
    if kind == "action":
        return _words_of_action(words)
    if kind in ("skill", "uri"):
        prefix = "skill://" if kind == "uri" else ""
        return [prefix + skill.name for skill in shelf_for(values).catalog.skills]
    if kind == "host":
        from skillshelf.config.hosts import HOSTS

        return HOSTS
    if kind == "profile":
        return _profiles(values)
    if kind == "scope":
        from skillshelf.config.profile import scopes_of

        return scopes_of(shelf_for(values).profile)
    if kind == "rule":
        from skillshelf.config.rules import RULES

        return RULES
    if kind == "event":
        from skillshelf.journal.events import EVENTS

        return EVENTS
    return [name for name in COMMANDS if name] if kind == "command" else []


def _words_of_action(words: Sequence[str]) -> Iterator[str]:
    """Yield what may follow the arguments of an unfinished line, by the actions in the help of its command."""
    name, *typed = _arguments(words) or [""]
    for action, _ in COMMANDS[name].actions:
        parts = action.split()
        # A part in capitals stands for any word.
        fits = all(word in part.split("|") or part != part.lower() for word, part in zip(typed, parts, strict=False))
        if fits and len(parts) > len(typed) and re.fullmatch(r"[a-z|]+", parts[len(typed)]):
            yield from parts[len(typed)].split("|")


def _arguments(words: Sequence[str]) -> list[str]:
    """Return the command and the arguments among the words of a line, without options and their values."""
    found: list[str] = []
    takes, is_value = {option.name for option in SHARED if option.value}, False
    for word in words:
        if is_value or word.startswith("-"):
            is_value = not is_value and word in takes
            continue
        if not found:
            if word not in COMMANDS:
                return []
            takes |= {option.name for option in COMMANDS[word].options if option.value}
        found.append(word)
    return found


_OF_MACHINE = frozenset(("why", "link", "sync"))
"""Commands about any skill of the machine; so are all that are about a host, by `--in`."""


def _names_of_machine(values: Values) -> list[str]:
    """Return the names that the last inventory found and those of the profile; no folder is searched for more."""
    from skillshelf.catalog.machine_files import known_machine_files

    shelf = shelf_for(values)
    names = [skill.name for skill in shelf.catalog.skills]
    if shelf.cache is not None:
        custom = shelf.settings.custom_directories
        kept = known_machine_files(shelf.cache, shelf.environment, custom, stale=True)
        names += [name for _, _, name in kept.rows] if kept is not None else []
    return sorted(names)


def _profiles(values: Values) -> list[str]:
    from skillshelf.cli.commands import environment_for
    from skillshelf.config.builtin_profiles import HOST_PREFIX, SYSTEMS
    from skillshelf.config.hosts import HOSTS
    from skillshelf.config.settings import load_settings

    try:
        own = load_settings(environment_for(values), trust="ask").profiles
    except SkillError:
        own = {}
    return [*SYSTEMS, *own, *(HOST_PREFIX + host for host in HOSTS)]
