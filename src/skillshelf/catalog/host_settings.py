"""A host's own settings files to what they say: the values under a key, and whether the host trusts a folder."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from skillshelf.config.profile import Profile, SettingForm, SettingRule, Syntax
from skillshelf.core import files
from skillshelf.core.console import PathDisplay
from skillshelf.core.environment import Environment
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.values import Diagnostic, VerdictName

__all__ = [
    "HostTrust",
    "Off",
    "Setting",
    "SettingsPlace",
    "Switch",
    "Unreadable",
    "host_trust",
    "settings_of",
    "switched_off",
    "switches_of",
]


class SettingsPlace(NamedTuple):
    """What the files of a host's settings are looked for from: `chain` begins at the working directory."""

    environment: Environment
    chain: tuple[str, ...]


class Setting(NamedTuple):
    """What one file says under a key; `file` is its path as people are shown it."""

    file: str
    value: Any


class Unreadable(Exception):
    """A settings file that is there and says nothing that can be understood."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} cannot be read: {why}")
        self.path = path


def settings_of(rule: SettingRule, where: SettingsPlace, *, trusted: bool) -> list[Setting]:
    """What the files of a rule say, the weakest first; a key may be written with dots or as nested tables."""
    found = []
    for path in _paths(rule, where, trusted=trusted):
        for value in _under(rule.key.split("."), _read(path, rule.syntax, where.environment)):
            found.append(Setting(_shown(path, where.environment), value))
    return found


# Files --------------------------------------------------------------------------------------------


def _paths(rule: SettingRule, where: SettingsPlace, *, trusted: bool) -> Iterator[str]:
    """The files of a rule that there may be."""
    bases: Mapping[str, tuple[str, ...]] = {
        "home": (where.environment.home,) if where.environment.home else (),
        "cwd": (where.environment.cwd,),
        "chain": where.chain[::-1],
        "repository": where.chain[-1:],
    }
    moved = where.environment.env.get(rule.moved_by, "") if rule.moved_by else ""
    for file in rule.files:
        base, _, path = file.partition(":")
        if base != "home" and rule.project_files == "trusted" and not trusted:
            continue
        if base == "home" and os.path.isabs(moved):
            yield os.path.join(moved, path.partition("/")[2])
        else:
            yield from (os.path.join(folder, path) for folder in bases[base])


def _read(path: str, syntax: Syntax, environment: Environment) -> Any:
    """What a file holds; an empty table where there is none."""
    try:
        data = files.read_file(path, limit=CONFIG_BYTES, links="follow")
        if data is None:
            raise Unreadable(_shown(path, environment), f"no file of at most {CONFIG_BYTES:,} bytes")
        # Most hosts pass over a byte order mark here.
        return _SYNTAXES[syntax](data.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Unreadable(_shown(path, environment), (error.strerror or str(error)).lower()) from None
    except (ValueError, RecursionError) as error:
        said = str(error).split("\n")[0] if isinstance(error, ValueError) else "too deep"
        raise Unreadable(_shown(path, environment), said) from None


def _json(text: str) -> Any:
    import json

    return json.loads(text) if text.strip() else {}


def _toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    from skillshelf.catalog.frontmatter import YamlProblem, load_yaml

    try:
        return load_yaml(text)
    except YamlProblem as problem:
        raise ValueError(problem.message) from None


# A string or a comment that nothing closes ends with the text, so that nothing is gone through twice.
_STRING = r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match[1] or " ", text)


_SYNTAXES: Mapping[Syntax, Callable[[str], Any]] = {
    "json": _json,
    "json-comments": lambda text: _json(_without_comments(text)),
    "jsonc": lambda text: _json(_LAST_COMMA.sub(lambda match: match[1] or "", _without_comments(text))),
    "toml": _toml,
    "yaml": _yaml,
}


def _under(keys: list[str], value: Any) -> Iterator[Any]:
    """The values at a path of keys, of which `*` means every one; nothing where there is none."""
    if not keys:
        yield value
    elif isinstance(value, Mapping):
        if (whole := ".".join(keys)) in value:
            yield value[whole]
        elif keys[0] == "*":
            for item in value.values():
                yield from _under(keys[1:], item)
        elif keys[0] in value:
            yield from _under(keys[1:], value[keys[0]])


def _shown(path: str, environment: Environment) -> str:
    return PathDisplay(environment.cwd, environment.home).short(path)


# Trust --------------------------------------------------------------------------------------------


class HostTrust(NamedTuple):
    """Whether a host trusts the working directory, and what kept anybody from knowing it."""

    trusted: bool
    problem: Diagnostic | None = None


def host_trust(profile: Profile, where: SettingsPlace) -> HostTrust:
    """What a host's variables, its switch and its own record, in this order, say about the working directory."""
    if any(_is_set(entry, where.environment) for entry in profile.distrust_env):
        return HostTrust(trusted=False)
    if any(_is_set(entry, where.environment) for entry in profile.trust_env):
        return HostTrust(trusted=True)
    try:
        switch = profile.trust_switch
        said = [setting.value for setting in settings_of(switch, where, trusted=False)] if switch else []
        return HostTrust(trusted=said[-1:] == [False] or _is_recorded(profile, where.environment))
    except Unreadable as error:
        return HostTrust(trusted=False, problem=Diagnostic(error.path, "settings-unreadable", str(error)))


def _is_set(entry: str, environment: Environment) -> bool:
    """Whether a variable has the value that a row like `NAME=true` names."""
    name, _, value = entry.partition("=")
    return environment.env.get(name) == value


def _is_recorded(profile: Profile, environment: Environment) -> bool:
    """Whether the host's own record trusts the working directory: the longest path in it that is about it decides."""
    path = environment.env.get(profile.trust_file_env, "") if profile.trust_file_env else ""
    if not path and (environment.home is None or profile.trust_file is None):
        return False
    path = path or os.path.join(environment.home or "", profile.trust_file or "")
    record = _read(path, profile.trust_syntax, environment)
    if not isinstance(record, Mapping):
        raise Unreadable(_shown(path, environment), "it is no table of folders")
    rules = []
    for folder, value in record.items():
        level = profile.trust_levels.get(value if isinstance(value, str) else str(value).lower())
        if level is None:
            raise Unreadable(_shown(path, environment), f"{value!r} for {folder} is no level of trust")
        if level != "none" and files.is_inside(environment.cwd, _meant(folder, level, profile)):
            rules.append((len(folder), level))
    return bool(rules) and max(rules, key=lambda rule: rule[0])[1] != "refused"


def _meant(folder: str, level: str, profile: Profile) -> str:
    """The folder that a record is about."""
    if level == "parent":
        folder = os.path.dirname(folder)
    return files.real_path(folder) if profile.trust_paths == "real" else folder


class Off(NamedTuple):
    """What a setting does to a skill, where it stands, and what would undo it."""

    verdict: VerdictName
    detail: str
    fix: str = ""


class Switch(NamedTuple):
    """A setting that some file has, or the reason why nobody knows whether one has."""

    rule: SettingRule
    said: tuple[Setting, ...]
    problem: str = ""


def switches_of(profile: Profile, where: SettingsPlace, *, trusted: bool) -> tuple[Switch, ...]:
    """The settings of a host that its files have."""
    found = []
    for rule in profile.settings:
        try:
            said = settings_of(rule, where, trusted=trusted)
        except Unreadable as error:
            found.append(Switch(rule, (), str(error)))
            continue
        if said:
            found.append(Switch(rule, tuple(said)))
    return tuple(found)


def switched_off(name: str, real_path: str, switches: Sequence[Switch]) -> Off | None:
    """What the settings do to the skill of that name in that file: what is certain comes first."""
    found = [off for switch in switches if (off := _effect(name, real_path, switch))]
    return min(found, key=lambda off: off.verdict == "unknown", default=None)


def _effect(name: str, real_path: str, switch: Switch) -> Off | None:
    if switch.problem:
        return Off("unknown", f"a file of its settings: {switch.problem}")
    return FORMS[switch.rule.form](name, real_path, switch)


def _doubt(setting: Setting, rule: SettingRule) -> Off:
    return Off("unknown", f"a setting of the host names it: {rule.key} in {setting.file}")


# Forms --------------------------------------------------------------------------------------------


def _names(name: str, real_path: str, switch: Switch) -> Off | None:
    """Lists of names that are off, in whatever case; all files count."""
    key = switch.rule.key
    for file, value in switch.said:
        if not isinstance(value, list):
            return Off("unknown", f"{key} in {file} is no list")
        if name.lower() in [str(item).lower() for item in value]:
            return Off("disabled-by-config", f"{key} in {file} names it", f"take {name!r} out of {key} in {file}")
    return None


def _all(name: str, real_path: str, switch: Switch) -> Off | None:
    """A switch of all skills; the strongest file decides."""
    key, (file, value) = switch.rule.key, switch.said[-1]
    if value is True:
        return None
    if value is not False:
        return Off("unknown", f"{key} in {file} is neither true nor false")
    return Off("disabled-by-config", f"{key} is off in {file}", f"set {key} to true in {file}")


def _entries(name: str, real_path: str, switch: Switch) -> Off | None:
    """A list of tables with a name or a path; the last one that means the skill decides."""
    key, last = switch.rule.key, None
    for setting in switch.said:
        entries = setting.value if isinstance(setting.value, list) else [None]
        for entry in entries:
            if not isinstance(entry, Mapping) or not isinstance(entry.get("enabled"), bool):
                return Off("unknown", f"{key} in {setting.file} has an entry that is not understood")
            if _is_meant(entry, name, real_path):
                last = (setting.file, entry["enabled"])
    if last is None or last[1]:
        return None
    return Off("disabled-by-config", f"{key} in {last[0]} turns it off", f"set enabled to true for it in {last[0]}")


def _is_meant(entry: Mapping[str, Any], name: str, real_path: str) -> bool:
    """Whether an entry means a skill: one with both a name and a path means none."""
    given, path = entry.get("name"), entry.get("path")
    if (given is None) == (path is None):
        return False
    return str(given).strip() == name if path is None else files.real_path(str(path)) == real_path


def _states(name: str, real_path: str, switch: Switch) -> Off | None:
    """A state for each name; the strongest file that has the name decides."""
    key = switch.rule.key
    for file, value in reversed(switch.said):
        if not isinstance(value, Mapping):
            return Off("unknown", f"{key} in {file} is no table")
        if name in value:
            effect = _STATES.get(str(value[name]))
            where = f"{key} in {file} says {value[name]!r}"
            if effect is None:
                return Off("unknown", f"{where}, which nobody has tried")
            said = f"{where}{effect[1]}"
            return Off(effect[0], said, f"take {name!r} out of {key} in {file}") if effect[0] != "visible" else None
    return None


_STATES: Mapping[str, tuple[VerdictName, str]] = {
    "on": ("visible", ""),
    "off": ("disabled-by-config", ""),
    "user-invocable-only": ("hidden-from-model", "; people can still call it"),
    "name-only": ("description-cut", "; its model is told the name alone"),
}


def _patterns(name: str, real_path: str, switch: Switch) -> Off | None:
    """Patterns that allow, ask or deny; in one file the last that fits decides, and files must agree."""
    key, found = switch.rule.key, {}
    for file, value in switch.said:
        rules = {"*": value} if isinstance(value, str) else value
        if not isinstance(rules, Mapping):
            return Off("unknown", f"{key} in {file} is no table of patterns")
        if fitting := [action for pattern, action in rules.items() if _fits(name, pattern)]:
            found[file] = fitting[-1]
    denying = [file for file, action in found.items() if action == "deny"]
    if not denying:
        return None
    if len(denying) < len(found):
        return Off("unknown", f"{key} denies it in {denying[0]}, and another file does not")
    return Off("disabled-by-config", f"{key} in {denying[0]} denies it", f"allow {name!r} in {key} of {denying[0]}")


def _fits(name: str, pattern: str) -> bool:
    """Whether a pattern in which only `*` and `?` are special fits the whole name."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _mentions(name: str, real_path: str, switch: Switch) -> Off | None:
    """Words that mean the skill, to an effect that nobody has established."""
    for setting in switch.said:
        for word in _words_in(setting.value):
            match = re.fullmatch(switch.rule.mention, word, re.DOTALL)
            if match and _may_mean(match[1] or "*", name):
                return _doubt(setting, switch.rule)
    return None


def _words_in(value: Any) -> Iterator[str]:
    """The texts of a list, or of a table its keys; a text by itself means everything."""
    if isinstance(value, list | Mapping):
        yield from (str(item) for item in value)
    elif isinstance(value, str):
        yield "*"


def _may_mean(pattern: str, name: str) -> bool:
    """Whether a pattern, which may be one of paths, can mean a name."""
    if "/" in pattern:
        return any(mark in pattern for mark in "*?[{") or name in pattern.split("/")
    return _fits(name, pattern)


def _whole(name: str, real_path: str, switch: Switch) -> Off | None:
    """A setting about all skills that is off, to an effect that nobody has established."""
    setting = switch.said[-1]
    value = setting.value.get("*") if isinstance(setting.value, Mapping) else setting.value
    return _doubt(setting, switch.rule) if value in (False, "deny") else None


def _any(name: str, real_path: str, switch: Switch) -> Off | None:
    """Settings about skills, whatever they are, of which nobody has established what they do together."""
    said = [setting for setting in switch.said if setting.value]
    return Off("unknown", f"the host has settings about skills: {switch.rule.key} in {said[0].file}") if said else None


FORMS: Mapping[SettingForm, Callable[[str, str, Switch], Off | None]] = {
    "names": _names,
    "all": _all,
    "entries": _entries,
    "states": _states,
    "patterns": _patterns,
    "mentions": _mentions,
    "whole": _whole,
    "any": _any,
}
